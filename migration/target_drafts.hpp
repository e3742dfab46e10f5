// Which targets a host's connections by hand lead to.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "migration/survey/survey.hpp"
#include "nvmetcp/types.hpp"

namespace spark::host {

// A connection that was found, and where.
struct Found {
  ManualConnection connection;
  std::string origin;
  bool is_running = false;  // else it stands in a file
};

// The set of portals that lead to the same subsystem.
struct TargetDraft {
  std::string name;
  std::vector<nvmetcp::Portal> portals;
  ManualConnection settings;         // the first connection's, with the protection of all
  std::vector<std::string> remarks;  // a sentence for each detail that is left out
  std::string origin;
};

struct LeftOut {
  Found found;
  std::string reason;
};

struct TargetDrafts {
  std::vector<Found> found;  // all connections
  std::vector<TargetDraft> targets;
  std::map<std::string, std::string> of_subsystem;  // its target's name; none: its connections are left out
  std::vector<LeftOut> left_out;
};

// What a file leaves unclear is decided by the running connection.
TargetDrafts draft_targets(const SystemRoot& root, const Survey& survey);

}  // namespace spark::host
