"""One page for a browser, made from the documents that the program wrote: no network, all of it in one file.

``documents`` reads the files and says what each is; a file a section turns one kind of document into what the page
shows; ``page`` puts it together. Everything that comes from a file is data: it is escaped where it is shown, and the
page allows no script but its own.
"""
