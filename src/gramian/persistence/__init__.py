"""Save and load models, in files without code.

One walk over an object's state serves every class: plain values become JSON, arrays become NPY
entries of a ZIP archive, and objects become the names of their classes. Names are looked up only
among gramian's own classes, so a file cannot run code or name other files to read. Shared objects
are stored once, and the same model always gives the same bytes. Entries are not compressed: their
checksums reveal damage, and their sizes are checked before anything is allocated.

A file that is read may come from anyone. ``archive`` checks the container, ``decoding`` everything
in it, ``generators`` the states of random generators. Objects get their states when all is checked.
"""
