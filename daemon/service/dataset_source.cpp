#include "daemon/service/dataset_source.hpp"

#include "base/kernel/mount_table.hpp"
#include "base/text.hpp"
#include "daemon/volumes/volume/readiness.hpp"

namespace spark {
namespace {

using SourcePlace = datasets::SourcePlace;

// Away peers are noticed by an attempt alone.
SourcePlace place_at_peers() {
  SourcePlace place;
  place.is_at_peers = place.is_exchanged = true;
  place.drive = "peers of the fleet";
  return place;
}

SourcePlace place_of_folder(const config::Dataset& dataset, HostSnapshot& snapshot) {
  SourcePlace place;
  place.path = dataset.path;
  place.is_exchanged = dataset.peers;
  if (dataset.peers) place.origin = "folder " + dataset.name;
  if (const auto& table = snapshot.mounts()) {
    const mounts::Mount* carrier = mounts::carrier_of(*table, dataset.path);
    if (carrier != nullptr) place.drive = carrier->source;
  }
  return place;
}

SourcePlace place_on_volume(const config::Dataset& dataset, const volumes::Volume& volume) {
  SourcePlace place;
  const volumes::Status& status = volume.status();
  const volumes::CheckedMount& mount = *volume.context().checked;
  if (status.mounted().foreign_writes)
    place.doubt = datasets::Doubt{status.reason.empty() ? "being written" : status.reason, mount.is_outdated};
  if (volumes::is_reader(volume.context())) {
    place.device = status.device;
    place.stamp = mount.stamp;
    const auto& published = status.mounted().published;
    if (published && !place.doubt) place.generation = published->generation;
  }
  place.is_exchanged = volumes::is_reader(volume.context()) || volume.settings().nfs.has_value();
  if (const auto& nfs = volume.settings().nfs) place.origin = "nfs " + nfs->host + ":" + nfs->path;
  place.drive = dataset.volume;
  place.mount = volume.settings().mount.native();
  place.numbers = mount.mount.numbers();
  place.path = (volume.settings().mount / dataset.path).native();
  return place;
}

}  // namespace

Result<SourcePlace> find_source(const config::Dataset& dataset, const volumes::VolumeSet& volumes,
                                HostSnapshot& snapshot) {
  if (dataset.volume.empty())
    return dataset.path.empty() ? place_at_peers() : place_of_folder(dataset, snapshot);
  const auto volume = volumes.find(dataset.volume);
  if (!volume)
    return fail(Errc::NotFound, "no volume " + printable(dataset.volume) + " in the configuration");
  if (auto ready = volumes::check_ready(*volume); !ready) return ready.take_error();
  return place_on_volume(dataset, *volume);
}

bool may_be_back_soon(const config::Dataset& dataset, const volumes::VolumeSet& volumes, WallTime now) {
  const auto volume = volumes.find(dataset.volume);
  if (!volume) return false;
  const volumes::History& history = volume->status().history;
  return volume->is_settling() || (history.is_out() && now - history.outages().back().began < kShortOutage);
}

}  // namespace spark
