// The security of a process that may run longer than its key is in use.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>

#include "fleet/transport/channel.hpp"

namespace spark::fleet {

// Thread-safe.
class CurrentSecurity {
 public:
  // Without a file the key never changes.
  explicit CurrentSecurity(std::shared_ptr<Security> security, std::filesystem::path key_file = {})
      : now_(std::move(security)), key_file_(std::move(key_file)) {}

  std::shared_ptr<Security> get() const;
  // After another host denied `denied`: reads the file again. Null if it has no other key.
  std::shared_ptr<Security> instead_of(const Security& denied);

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Security> now_;
  const std::filesystem::path key_file_;
};

}  // namespace spark::fleet
