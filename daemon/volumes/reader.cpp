// A reader's mount and what others write under it: a kernel that has it mounted never looks at the disk for
// what it has in memory, so after a writer it shows a mixture of old and new.
#include "daemon/volumes/volume.hpp"

namespace spark::volumes {

// Ready, and marked: it can be read, and is not to be trusted.
void Volume::look_for_writers(const ProbeAnswer& answer) {
  if (!is_reader() || is_changing_writing_) {
    status_.foreign_writes = is_outdated_ = false;
    return;
  }
  if (mounted_stamp_ == 0) mounted_stamp_ = answer.stamp;
  const bool moved = answer.stamp != mounted_stamp_;
  status_.foreign_writes = answer.being_written || moved;
  is_outdated_ = moved && !answer.being_written;
  if (is_outdated_) return;
  leave_backoff_.reset();
  next_leave_ = {};
  reader_users_.clear();
}

std::string Volume::reader_reason() const {
  if (!status_.foreign_writes) return "";
  if (!is_outdated_) return "being written by another host: what is read here may be torn";
  return "written by another host since it was mounted here: mounted anew as soon as nobody uses it" +
         (reader_users_.empty() ? "" : " (" + reader_users_ + ")");
}

// The writer has closed it: what is mounted here is old. True if it was taken off. Its users may keep it for
// hours, and each attempt looks through all processes for them.
asio::awaitable<bool> Volume::leave_outdated_mount() {
  if (clock_.steady() < next_leave_) co_return false;
  const auto unmounted = co_await actions_->unmount(settings_.mount, false);
  next_leave_ = clock_.steady() + leave_backoff_.next();
  const bool was_in_use = !reader_users_.empty();
  reader_users_ = unmounted ? "" : unmounted.error().what;
  if (was_in_use && !unmounted) status_.reason = ready_reason();  // by others meanwhile: no news for the log
  co_return unmounted.has_value();
}

}  // namespace spark::volumes
