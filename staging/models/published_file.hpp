// A file's digest and size as its publisher states them.
#pragma once

#include <string>

#include "base/units.hpp"

namespace spark::staging {

struct PublishedFile {
  std::string path;
  Bytes size = 0;   // 0: not known
  std::string hex;  // SHA-256 (64 digits), or git's SHA-1 of a blob (40 digits); empty: not known
  std::string told_by;
};

}  // namespace spark::staging
