// Resolves several names within a time limit, although a name service that is away may take long over each.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spark::fleet {

using Resolve = std::function<Result<std::vector<std::string>>(const std::string& name)>;

// The addresses by name; without those that the name service did not find within `limit` for all of them.
// `resolve` is called from other threads, which may still use it after the return.
std::map<std::string, std::vector<std::string>> resolve_all(const std::vector<std::string>& names,
                                                            std::chrono::milliseconds limit,
                                                            const Resolve& resolve);

}  // namespace spark::fleet
