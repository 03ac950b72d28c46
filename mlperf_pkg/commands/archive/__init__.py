"""One file out of a submission tree and back: packing, encrypting, unpacking, verifying."""
