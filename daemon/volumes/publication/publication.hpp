// Publishing: a writer closes its file system, so that readers get a consistent state. It stays closed until
// a person wants to write again. Also detects writes under a reader's mount: the reader's kernel never
// re-reads data that it has in memory, so after such writes it shows a mixture of old and new.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "daemon/backoff.hpp"
#include "daemon/volumes/context.hpp"
#include "daemon/volumes/fence/fence.hpp"

namespace spark::volumes {

class Publication {
 public:
  Publication(VolumeContext& volume, Fence& fence)
      : volume_(volume),
        fence_(fence),
        leaving_(volume.timings.first_leave, volume.timings.longest_leave, volume.clock) {}

  // Makes an exclusive, ready volume read-only, with its state published for readers; optionally makes it
  // writable again immediately.
  asio::awaitable<Result<mounts::Published>> publish(mounts::AfterPublish then);
  // The reverse; does nothing if the volume is not published. Waits for the end of an attempt that mounts it
  // as published.
  asio::awaitable<Result<>> make_writable();

  // Evaluates a probe's superblock for other hosts' writes. A volume marked this way stays ready, but its
  // data can't be trusted.
  void look_for_writers(CheckedMount& mount, const mounts::Superblock& seen);
  // The writer has published a newer state, so this mount is outdated. True if it was unmounted. Its users
  // may keep it for hours, and each attempt searches all processes for them.
  asio::awaitable<bool> leave_outdated();

  // The remark in `status` while the volume is ready; empty means none.
  std::string ready_reason() const;

 private:
  Result<> check_can_change() const;
  asio::awaitable<Result<>> flush();
  asio::awaitable<void> record_wish();
  asio::awaitable<Result<>> forget_wish();
  asio::awaitable<void> wait_for_reader();
  void note_change(CheckedMount& mount, bool is_changing);
  Remount remount_of(const CheckedMount& mount) const;
  std::string reader_reason() const;

  VolumeContext& volume_;
  Fence& fence_;
  std::string users_;  // why the outdated mount stays; empty means unknown
  Backoff leaving_;
  SteadyTime next_leave_{};
};

}  // namespace spark::volumes
