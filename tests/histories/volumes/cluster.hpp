// Two hosts, their targets and their volumes: what a seed chose, and what happened to it.
#pragma once

#include <array>
#include <memory>
#include <set>

#include "tests/histories/volumes/daemon.hpp"

namespace spark::histories {

// A volume in the configuration file of one host.
struct VolumeSettings {
  std::string name, target, subsystem, mount;
  std::uint32_t nsid = 1;
  std::string uuid;  // empty: not in the file
  bool is_exclusive = false, holds = false;
  SteadyTime holds_since{};  // the configuration's last change of it
  std::string fence;         // with is_exclusive
  bool is_configured = true;
};

// What an operator wants of a volume, as far as the requests that ended say.
enum class Wish { Up, Down, Unknown };

struct HostState {
  std::unique_ptr<Host> host;
  std::unique_ptr<Daemon> daemon;  // none: it does not run
  std::vector<VolumeSettings> volumes;
  std::map<std::string, Wish> wishes;  // by volume; absent: Up
  // By volume without a UUID in the configuration: the first one recorded in the state folder.
  std::map<std::string, std::string> meant;
  // Volumes that an operator has asked up, or taken over, since they were published last: to be written here.
  std::set<std::string> written;
  int next_pid = 4000;
  SteadyTime cleared{};  // when programs last closed their files, or a person unmounted something

  Wish wish(const std::string& volume) const;
  void end_daemon();
};

class Cluster {
 public:
  Cluster(std::uint64_t seed, const Story& story);
  ~Cluster();

  VirtualTime time;
  Random random;
  Judge judge;
  const Story story;
  Scene scene;
  Network network;
  std::array<HostState, kHosts> hosts;
  int last_super = 0, last_record = 0, last_uuid = 0;

  void tell(const std::string& sentence) const { scene.tell(sentence); }
  // Time passes for all of them. `observe` is called every few seconds.
  void pass(Duration duration);
  std::function<void()> observe = [] {};
  // How a request ended; before the wish changes.
  std::function<void(std::size_t host, const Request&)> on_end = [](std::size_t, const Request&) {};

  void network_changed(bool is_abrupt);
  void start_daemon(std::size_t index);
  void kill_daemon(std::size_t index);
  void reboot(std::size_t index);
  void ask(std::size_t index, Ask ask, const std::string& volume);
  void reload(std::size_t index);

  // Invalid: `config check` refuses it.
  Result<config::Config> config_of(std::size_t index) const;
  Target& target_of(const VolumeSettings& volume);
  // The disk that is meant to be the volume's.
  Disk& disk_of(const VolumeSettings& volume);
  std::string next_uuid();

 private:
  void make_targets();
  void make_volumes();
  void note_fences();
  void note_take(std::size_t index, const VolumeSettings& settings);
  void note_unfinished_takes(std::size_t index);
  void note_watched(HostState& state);
  void check_alone(std::size_t index, const Super& opened);
  void ended(std::size_t index, const Request& request);

  bool are_two_of_one_namespace_ = false;
  std::array<std::map<std::string, Wish>, kHosts> before_;  // the wish when the request began
};

}  // namespace spark::histories
