// Which failures are a device's or a server's, not the copy's.
#pragma once

#include "base/result.hpp"
#include "staging/files/tree.hpp"

namespace spark::staging {

// The drive could not give what is on it.
bool is_medium_error(int number);

// The error of a copy as its caller should see it: Unavailable when reading the source failed because its
// device, server or network is in trouble, so that the same may succeed later.
Error with_source_trouble(Error error, const Tree& source);

}  // namespace spark::staging
