// Separates decisions (the components of a volume) from access: workers and sysfs, a simulated host
// (daemon/sim), or the fakes of unit tests.
#pragma once

#include <memory>

#include "daemon/volumes/seams/device.hpp"
#include "daemon/volumes/seams/fabric.hpp"
#include "daemon/volumes/seams/fabric_snapshot.hpp"
#include "daemon/volumes/seams/mounts.hpp"
#include "daemon/volumes/seams/neighbours.hpp"
#include "daemon/volumes/seams/reservations.hpp"
#include "daemon/volumes/seams/store.hpp"

namespace spark::volumes {

// All seams of one volume.
struct Seams {
  Fabric& fabric;
  FabricSnapshot& snapshot;
  Mounts& mounts;
  Device& device;
  Reserve reserve;
  VolumeStore& store;
  Neighbours neighbours;
  std::shared_ptr<void> owner;  // owns the referenced objects
};

}  // namespace spark::volumes
