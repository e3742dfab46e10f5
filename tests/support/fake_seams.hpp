// Implements the seams of a volume in memory.
#pragma once

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>

#include "tests/support/fake_fabric.hpp"
#include "tests/support/fake_storage.hpp"
#include "tests/support/fake_world.hpp"

namespace spark::volumes {

class FakeStore final : public VolumeStore {
 public:
  explicit FakeStore(FakeWorld& world) : world_(world) {}

  asio::awaitable<Result<>> pin(FilesystemIdentity identity) override {
    const bool is_removed = identity == FilesystemIdentity{};
    if (world_.is_state_full && !is_removed) co_return fail(Errc::NoSpace, "recording it");
    world_.pinned = is_removed ? std::nullopt : std::optional(identity);
    co_return Result<>{};
  }
  Result<FilesystemIdentity> pinned_identity() override {
    if (world_.pin_error) return fail(*world_.pin_error);
    return world_.pinned.value_or(FilesystemIdentity{});
  }
  asio::awaitable<Result<>> save_intent(Intent intent) override {
    world_.touched.emplace_back(intent.up            ? "record up"
                                : intent.is_released ? "record released"
                                                     : "record down");
    if (world_.intent_takes.count() > 0) {
      asio::steady_timer timer(co_await asio::this_coro::executor, world_.intent_takes);
      co_await timer.async_wait(asio::use_awaitable);
    }
    if (world_.intent_error) co_return fail(*world_.intent_error);
    world_.intent = intent;
    co_return Result<>{};
  }
  Result<Intent> saved_intent() override { return world_.intent; }
  asio::awaitable<Result<>> save(Record kind, json::object record) override {
    for (unsigned turn = 0; turn < world_.save_takes; ++turn) co_await asio::post(asio::use_awaitable);
    if (world_.is_state_full && !record.empty()) co_return fail(Errc::NoSpace, "recording it");
    world_.records[kind] = std::move(record);
    co_return Result<>{};
  }
  json::object saved(Record kind) override { return world_.records[kind]; }

 private:
  FakeWorld& world_;
};

// All seams of a volume, based on one world.
inline Seams fake_seams(FakeWorld& world) {
  struct All {
    explicit All(FakeWorld& world)
        : fabric(world), snapshot(world), mounts(world), device(world), store(world) {}
    FakeFabric fabric;
    FakeFabricSnapshot snapshot;
    FakeMounts mounts;
    FakeDevice device;
    FakeStore store;
  };
  const auto all = std::make_shared<All>(world);
  Reserve reserve = [&device = all->device](ReservationRequest request) {
    return device.reserve(std::move(request));
  };
  Neighbours neighbours;
  neighbours.host_identity = [] { return nvmetcp::HostIdentity{FakeWorld::kHost, FakeWorld::kHostId}; };
  neighbours.node_name = [] { return FakeWorld::kNode; };
  neighbours.subsystem_shared = [&world] { return world.shared; };
  neighbours.target_at = [](const nvmetcp::Portal& numeric) {
    return numeric.address == FakeWorld::kOtherAddress ? "spare"
           : numeric.address == "10.0.0.5"             ? "rose"
                                                       : "";
  };
  neighbours.target_is_back = [&world] { world.touched.emplace_back("target is back"); };
  return {all->fabric,        all->snapshot, all->mounts,           all->device,
          std::move(reserve), all->store,    std::move(neighbours), all};
}

}  // namespace spark::volumes
