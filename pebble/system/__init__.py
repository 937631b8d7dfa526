"""What the machine gives: files that users name, memory, and processes of their own for libraries that clash."""
