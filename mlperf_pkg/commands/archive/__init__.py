"""From a submission tree to one file and back: pack, encrypt, unpack and verify."""
