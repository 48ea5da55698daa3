/* Capabilities. Owns: the ways to lose them. */
#ifndef EFR_SBX_CAPS_H
#define EFR_SBX_CAPS_H

#include <stdint.h>

/* Leaves exactly the capabilities of the mask (bit = CAP_ number) in permitted and effective,
 * and none in the inheritable, ambient and bounding sets; locks securebits where that is
 * permitted. Returns 0 or -1 with errno set. */
int caps_keep_only(uint64_t mask);

#endif
