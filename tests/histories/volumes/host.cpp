#include "tests/histories/volumes/host.hpp"

#include <cerrno>

#include "tests/histories/volumes/seams.hpp"

namespace spark::histories {
namespace {

nvmetcp::HostIdentity identity_of(std::size_t index) {
  const std::string digit = std::to_string(index + 1);
  const std::string id = digit + "1111111-2222-3333-4444-555555555555";
  return {"nqn.2014-08.org.nvmexpress:uuid:" + id, id};
}

struct AllSeams {
  AllSeams(Host& host, const std::string& volume)
      : fabric(host, volume),
        view(host),
        store(host, volume),
        mounts(host, store, volume),
        device(host, volume) {}

  HostFabric fabric;
  HostFabricView view;
  HostStore store;
  HostMounts mounts;
  HostDevice device;
};

}  // namespace

Result<> StateFolder::check_room(const std::string& doing) const {
  return is_full ? Result<>(fail_errno(ENOSPC, doing)) : Result<>();
}

Host::Host(Scene its_scene, Network& its_network, std::size_t its_index, NvmeDriver::Events events,
           int* last_super)
    : scene(its_scene),
      network(its_network),
      index(its_index),
      name("spark" + std::to_string(its_index + 1)),
      driver(its_scene, its_network, its_index, identity_of(its_index), std::move(events)),
      file_systems(its_scene, driver, name, last_super),
      mounts(file_systems, root),
      workers(its_scene) {}

nvmetcp::LocalRegistrant Host::registrant() const {
  return {driver.identity().id, 11 + index, 0};
}

volumes::Seams seams_of(Host& host, const std::string& volume) {
  const auto all = std::make_shared<AllSeams>(host, volume);
  volumes::Reserve reserve = [&device = all->device](volumes::ReservationRequest request) {
    return device.reserve(std::move(request));
  };
  volumes::Neighbours this_host{[&host] { return host.driver.identity(); }, [&host] { return host.name; }};
  return {all->fabric,        all->view,  all->mounts,          all->device,
          std::move(reserve), all->store, std::move(this_host), all};
}

}  // namespace spark::histories
