// A path that a request names and that does not exist.
#pragma once

#include <filesystem>

#include "base/result.hpp"

namespace spark::workers {

// Request: the path is that of a VOLUME:PATH.
enum class PathFrom { Config, Request };

// Adds a hint to the error of reading `path`, if the path does not exist and the error has no hint.
Error with_next_step(Error error, const std::filesystem::path& path, PathFrom from);

}  // namespace spark::workers
