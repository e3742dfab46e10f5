// A lease of this process: a generation that it reads is not evicted meanwhile. With a full state folder it
// is beside the copies.
#pragma once

#include <unistd.h>

#include <string>

#include "staging/cache/catalog/catalog.hpp"
#include "staging/cache/catalog/spare_leases.hpp"

namespace spark::staging {

class ReadLease {
 public:
  // `reader`: for messages, "a verification".
  ReadLease(Catalog& catalog, SpareLeases spare, std::string id, std::string reader)
      : catalog_(catalog), spare_(std::move(spare)), id_(std::move(id)), reader_(std::move(reader)) {}
  ~ReadLease() {
    static_cast<void>(catalog_.remove_lease(id_));
    static_cast<void>(spare_.remove(id_));
  }
  ReadLease(const ReadLease&) = delete;
  ReadLease& operator=(const ReadLease&) = delete;

  Result<> take(const GenerationRow& row) {
    Lease lease;
    lease.id = id_;
    lease.dataset = row.dataset;
    lease.generation = row.generation;
    lease.holder = reader_ + ", pid " + std::to_string(::getpid());
    lease.process = process_with(::getpid());
    auto taken = catalog_.add_lease(lease);
    const bool is_full = !taken && taken.error().kind == Errc::NoSpace;
    return is_full && spare_.add(lease) ? Result<>() : std::move(taken);
  }

 private:
  Catalog& catalog_;
  SpareLeases spare_;
  std::string id_, reader_;
};

}  // namespace spark::staging
