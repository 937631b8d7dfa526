"""What each command answers: one question a file, one frozen result, printed by the command line as it is."""
