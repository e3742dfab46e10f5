// The only face of liburing.
#pragma once

#include <memory>

#include "staging/files/io/io.hpp"

namespace spark::staging {

// Nothing where the kernel does not let this process have a ring.
std::unique_ptr<Io> make_uring_io(unsigned lanes, std::size_t buffer);

}  // namespace spark::staging
