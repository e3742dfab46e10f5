// Looks up host names without waiting long for a name service that is away. An answer of it can't be waited
// for with a limit, so threads of their own wait for it.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spark::fleet {

using Resolve = std::function<Result<std::vector<std::string>>(const std::string& name)>;
using FoundNames = std::map<std::string, std::vector<std::string>>;  // addresses by name

// Thread-safe. Its threads may outlive it, and use `resolve` until they end.
class NameService {
 public:
  explicit NameService(Resolve resolve);

  // Looks up the names, and waits for `limit` at most. The addresses of those that were found now or before;
  // an address leads to itself. A name without an answer is looked up by one thread at a time.
  FoundNames find(const std::vector<std::string>& names, std::chrono::milliseconds limit);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

bool is_address(const std::string& text);

}  // namespace spark::fleet
