#include "daemon/volumes/volume/readiness.hpp"

#include "base/text.hpp"

namespace spark::volumes {

Result<> check_ready(const Volume& volume) {
  const std::string& name = volume.settings().name;
  const Status& status = volume.status();
  if (status.state == State::Ready && volume.context().checked) return {};
  if (status.state == State::Ready) {
    return fail(Errc::Unavailable, "volume " + name + ": another program has changed its mount",
                "`spark-stage status` says more in a moment");
  }
  if (status.state == State::Down && status.taken_down) {
    return fail(Errc::Unavailable,
                "volume " + name + " was taken down by " + printable(status.taken_down->by),
                "`sudo spark-stage volumes up " + name + "` brings it up");
  }
  return fail(Errc::Unavailable,
              "volume " + name + " is " + to_string(status.state) + " since " + rfc3339(status.since) +
                  (status.reason.empty() ? "" : ": " + status.reason),
              "`spark-stage wait " + name + "` ends when it is ready");
}

}  // namespace spark::volumes
