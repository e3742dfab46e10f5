// A lease of this process: a generation that it reads is not evicted meanwhile.
#pragma once

#include <unistd.h>

#include <string>

#include "staging/cache/catalog/catalog.hpp"

namespace spark::staging {

class ReadLease {
 public:
  // `reader`: for messages, "a verification".
  ReadLease(Catalog& catalog, std::string id, std::string reader)
      : catalog_(catalog), id_(std::move(id)), reader_(std::move(reader)) {}
  ~ReadLease() { [[maybe_unused]] const auto removed = catalog_.remove_lease(id_); }
  ReadLease(const ReadLease&) = delete;
  ReadLease& operator=(const ReadLease&) = delete;

  Result<> take(const GenerationRow& row) {
    Lease lease;
    lease.id = id_;
    lease.dataset = row.dataset;
    lease.generation = row.generation;
    lease.holder = reader_ + ", pid " + std::to_string(::getpid());
    lease.process = process_with(::getpid());
    return catalog_.add_lease(lease);
  }

 private:
  Catalog& catalog_;
  std::string id_, reader_;
};

}  // namespace spark::staging
