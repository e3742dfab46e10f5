#include "daemon/outputs/output_place.hpp"

#include "base/text.hpp"
#include "daemon/volumes/volume/readiness.hpp"

namespace spark::outputs {
namespace {

using volumes::State;

tl::unexpected<Error> no_volume(const std::string& name) {
  return fail(Errc::NotFound, "no volume " + printable(name) + " in the configuration",
              "`spark-stage status` lists the volumes");
}

tl::unexpected<Error> refuse_reader(const config::Volume& settings) {
  const std::string name = "volume " + settings.name;
  if (settings.nfs) {
    return fail(Errc::Refused, name + " is mounted read-only on this host",
                "set `access: exclusive` for it: an NFS volume may have several writers");
  }
  return fail(Errc::Refused, name + " is read-only on this host",
              "send it from the host that has `access: exclusive` for it, or send it to an NFS volume");
}

tl::unexpected<Error> refuse_refused(const volumes::Volume& volume) {
  const volumes::Status& status = volume.status();
  const std::string& holder = status.fence.held_by;
  return fail(Errc::Refused,
              "volume " + volume.settings().name + " is refused on this host: " + status.reason,
              holder.empty() ? "`spark-stage status` gives the next step"
                             : "send it from " + printable(holder) + ", or send it to an NFS volume");
}

Result<VolumePlace> place_if_ready(const volumes::Volume& volume, bool is_simulated) {
  if (auto ready = volumes::check_ready(volume); !ready) return ready.take_error();
  const std::string mount = volume.settings().mount.native();
  const auto& checked = volume.context().checked;
  if (is_simulated) return VolumePlace{mount, ""};
  return VolumePlace{mount, mount, checked ? checked->mount.numbers() : mounts::MountNumbers{}};
}

}  // namespace

Result<VolumePlace> find_output_place(const std::string& name, const volumes::VolumeSet& volumes,
                                      bool is_simulated) {
  const auto volume = volumes.find(name);
  if (!volume) return no_volume(name);
  if (volume->settings().access != config::Access::Exclusive) return refuse_reader(volume->settings());
  if (volume->status().state == State::Refused) return refuse_refused(*volume);
  if (volumes::is_published(volume->context())) {
    return fail(Errc::Refused,
                "volume " + name + " is published to its readers, and read-only until it is written again",
                "`sudo spark-stage volumes up " + name + "` makes it writable");
  }
  return place_if_ready(*volume, is_simulated);
}

Result<VolumePlace> find_published_place(const std::string& name, const volumes::VolumeSet& volumes,
                                         bool is_simulated) {
  const auto volume = volumes.find(name);
  return volume ? place_if_ready(*volume, is_simulated) : no_volume(name);
}

}  // namespace spark::outputs
