// Tells failures of a device or server from failures of the copy.
#pragma once

#include "base/result.hpp"

namespace spark::staging {

// The drive could not read its data.
bool is_medium_error(int number);

// Of reading a copy back: it differs from its manifest, or its drive can't read it.
bool is_damage(const Error& error);

// Converts a copy's error for its caller: Unavailable if reading the source failed because its device, server
// or network is failing, so that a retry may succeed later. Otherwise as with_change().
Error with_source_trouble(Error error);

// For an error while a source is read: a file that went away is a change (Mismatch), no missing dataset.
// Otherwise as with_denial().
Error with_change(Error error);

// The same for an error of opening the source: says whose rights count.
Error with_denial(Error error);

}  // namespace spark::staging
