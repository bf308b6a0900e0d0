"""Where a lake's files lie: local disks and object stores, behind one protocol."""
