#include "fleet/transport/current_security.hpp"

#include "fleet/transport/key.hpp"

namespace spark::fleet {

std::shared_ptr<Security> CurrentSecurity::get() const {
  const std::scoped_lock lock(mutex_);
  return now_;
}

std::shared_ptr<Security> CurrentSecurity::instead_of(const Security& denied) {
  if (key_file_.empty()) return nullptr;
  const auto key = read_key(key_file_);  // not under the lock, because a drive may let it wait
  const std::scoped_lock lock(mutex_);
  if (now_->key() != denied.key()) return now_;  // another thread has read it
  if (!key || *key == denied.key()) return nullptr;
  auto made = Security::make(*key, now_->identity());
  if (!made) return nullptr;
  now_ = std::move(*made);
  return now_;
}

}  // namespace spark::fleet
