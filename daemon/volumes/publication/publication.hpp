// Publishing: a writer closes its file system, and whoever reads it gets that state, whole. It stays closed
// until a person wants to write again. And what others write under a reader's mount: a kernel that has it
// mounted never looks at the disk for what it has in memory, so after a writer it shows a mixture of old and
// new.
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
      : volume_(volume), fence_(fence), leaving_(volume.timings.first_leave, volume.timings.longest_leave) {}

  // An exclusive volume that is ready becomes read-only, and its state that of its readers, or is writable
  // again at once.
  asio::awaitable<Result<mounts::Published>> publish(mounts::AfterPublish then);
  // The other way round; of a volume that is not published there is nothing to do.
  asio::awaitable<Result<>> make_writable();

  // What a probe shows of others' writes: ready, and marked, it can be read, and is not to be trusted.
  void look_for_writers(const ProbeAnswer& answer);
  // The writer has closed it: what is mounted here is old. True if it was taken off. Its users may keep it
  // for hours, and each attempt looks through all processes for them.
  asio::awaitable<bool> leave_outdated();

  // What is to be said of the volume while it is ready; empty: nothing.
  std::string ready_reason() const;

 private:
  Result<> check_can_change() const;
  std::string reader_reason() const;

  VolumeContext& volume_;
  Fence& fence_;
  std::string users_;  // why the outdated mount stays; empty: not known that it has to
  Backoff leaving_;
  SteadyTime next_leave_{};
};

}  // namespace spark::volumes
