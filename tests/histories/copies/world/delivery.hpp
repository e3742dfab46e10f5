// Compares what the product handed out with the source.
#pragma once

#include <filesystem>
#include <string>

#include "tests/histories/copies/world/scene.hpp"

namespace spark::histories::copies {

// Of a request, with those that it shares its copy with.
struct Joined {
  SteadyTime from{};
  bool was_mounted = true;    // the source, since then
  std::uint64_t version = 0;  // of the source, then
  std::uint64_t faults = 0;   // of workers, until then
};

// A copy that a request was told of.
struct Delivery {
  std::string dataset;
  std::filesystem::path path;
  SteadyTime from{}, to{};  // of the request
  Joined joined;
  std::string by;                    // "stage", "copy"
  bool was_mounted = true;           // the source, all that time
  bool was_known_before = false;     // the product had a copy of this source already
  bool is_leased = false;            // for the request: nothing may supersede it
  bool is_verified = false;          // it was read back before it was handed out, as the user asked
  bool may_lack_attributes = false;  // a warning says so
};

// Notes a violation: wrong bytes, missing files, files of something else.
void check_delivery(Scene& scene, const Delivery& delivery);

}  // namespace spark::histories::copies
