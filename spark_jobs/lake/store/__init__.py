"""The files of a lake, on local disks and in object stores, behind one protocol."""
