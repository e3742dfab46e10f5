// The promises about volumes, compared with the truth of the simulated world.
#pragma once

#include "tests/histories/volumes/cluster.hpp"

namespace spark::histories {

// What is true of one volume on one host now.
struct Facts {
  Cluster& cluster;
  HostState& state;
  const VolumeSettings& settings;
  const volumes::Volume& volume;
  Disk& disk;
  MountEntry& reached;    // by the path of the mount point
  MountEntry* top;        // in the table; null: none
  std::size_t index = 0;  // of the host

  const std::string& host() const { return state.host->name; }
  std::string name() const { return host() + "/" + settings.name; }
  // The path leads to the whole file system of the volume's disk.
  bool is_reached() const;
  // Its disk answers over a connection that the daemon knows. One that a person made may lead to an address
  // that it does not know.
  bool has_own_path() const;
  // `reached`: a connection leads to it at the address that its target has now.
  bool is_at_present_address() const;
  bool is_publishing_at_old_address(const Request& request) const;
  bool is_in_use() const;  // by programs: files, mounts on it, other mounts of the device
};

// Whether a sentence of the status is false: the name of its oracle; empty: it is true, or of no known kind.
std::string false_oracle_of(const std::string& sentence, const Facts& facts);
// Whether the sentence is of a kind whose truth these oracles judge.
bool is_judged(const std::string& sentence);
// Whether it is of one of these kinds, or tells of an attempt.
bool is_known(const std::string& sentence);
std::string meant_uuid(const Facts& facts);
// The oracle of a request that does not end: "take-without-end".
std::string without_end(const Request& request);

class Oracles {
 public:
  explicit Oracles(Cluster& cluster) : cluster_(cluster) {}

  // After each step, and every few seconds while time passes.
  void observe();
  // A request has ended: what must hold at that moment.
  void request_ended(std::size_t host, const Request& request);
  // No volume is in the middle of an attempt.
  bool are_all_at_rest();
  // All faults have been gone for ten minutes.
  void settled();
  // Only the state folder has been full for ten minutes.
  void settled_without_room();

 private:
  // Broken once it has held for longer than `grace`.
  void must_end(std::string key, bool holds, Duration grace, const std::string& oracle,
                const std::function<std::string()>& what);
  void each(const std::function<void(const Facts&)>& look);
  void look_for_two_writers();
  void look_at_state(const Facts& facts);
  void look_at_sentences(const Facts& facts);
  void look_at_wish(const Facts& facts);
  void look_at_requests();
  bool may_wait(std::size_t host, const Request& request);
  bool is_well(const Facts& facts) const;

  Cluster& cluster_;
  std::map<std::string, SteadyTime> since_;
};

}  // namespace spark::histories
