// The only user of liburing.
#pragma once

#include <memory>

#include "staging/files/io/io.hpp"

namespace spark::staging {

// Null if the kernel does not allow this process a ring.
std::unique_ptr<Io> make_uring_io(unsigned lanes, std::size_t buffer);

}  // namespace spark::staging
