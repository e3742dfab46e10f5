// A note that this host has begun to make a file system on a namespace that was blank, kept until it is made.
// It shows that the remains of an interrupted attempt are this host's own.
#pragma once

#include <filesystem>
#include <string>

#include "base/file.hpp"
#include "nvmetcp/types.hpp"

namespace spark::cli {

class UnfinishedFormat {
 public:
  UnfinishedFormat() = default;
  UnfinishedFormat(const SystemRoot& root, const std::string& volume, const std::string& subsystem,
                   const nvmetcp::Namespace& block);

  // Of this very namespace: never where the target gives it no identity of its own.
  bool is_there() const;
  Result<> begin() const;  // durable before it returns
  void end() const;

 private:
  std::filesystem::path file_;
  std::string namespace_;  // which one, in one line; empty: it can't be told
};

}  // namespace spark::cli
