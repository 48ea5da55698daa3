# What Ubuntu 24.04 and later do: bubblewrap may make user namespaces, and what it starts has no
# capability in them. The second profile is stacked, as no_new_privs allows only that.
profile efr-test-bwrap /usr/bin/bwrap flags=(attach_disconnected,mediate_deleted) {
  capability,
  network,
  unix,
  ptrace,
  signal,
  mount,
  umount,
  pivot_root,
  /{**,} rwlkm,
  /** pix -> &efr-test-bwrap//&efr-test-unpriv,
}

profile efr-test-unpriv flags=(attach_disconnected,mediate_deleted) {
  network,
  unix,
  ptrace,
  signal,
  mount,
  umount,
  pivot_root,
  /{**,} rwlkm,
  /** pix -> &efr-test-unpriv,
  audit deny capability,
}
