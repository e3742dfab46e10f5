// What really happened to the checkpoints: known to the world alone.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "tests/histories/outputs/system/disks.hpp"

namespace spark::histories {

// An entry of a job's folder, which the job saved as a checkpoint.
struct Save {
  enum class State {
    Saving,     // the job has not finished it yet
    Complete,   // the job has finished it, and it is unchanged
    Torn,       // the job was killed while it saved, or saved it again
    Discarded,  // the job's rotation has begun to delete it
    Unclear,    // complete, but changed so that its rule may say otherwise
  };
  State state = State::Saving;
  std::uint64_t step = 0;
  SteadyTime done{};      // when it was completed, in virtual time
  SteadyTime changed{};   // the last change of anything in it, also by others than the job
  std::string attempt{};  // of several hosts: shards of one attempt belong together
};

using Saves = std::map<std::string, Save>;  // by name

struct Truth {
  std::vector<Saves> here;  // by host
  // The steps of all names that were ever saved as a checkpoint.
  std::map<std::string, std::uint64_t> steps;
  std::map<std::string, SteadyTime> done;  // when each was last completed, on any host
  // All complete states of each checkpoint.
  std::map<std::string, std::vector<Content>> complete;
  std::set<std::string> beside;     // names of files and folders that jobs write beside checkpoints
  std::set<std::string> numbered;   // the same, with a number that is no step of the job: sent, never lost
  std::set<std::string> temporary;  // names of saves that are not finished
  std::set<std::string> remnants;   // names whose deletion by the job has begun, until they are saved again
  std::vector<Save> gone;           // those that jobs have deleted: their steps, and when
  std::set<std::string> touched;    // changed after they were complete, until they are saved again
  std::set<std::string> damaged;    // on the volume, by a person who sent something into it
  std::set<std::string> exports;    // names that a person sent to the output's folder on the volume
  std::map<std::pair<std::size_t, std::string>, SteadyTime> sent;  // by host and name: when it published it
  SteadyTime last_clock_change{};                                  // of any host; 0: none
  SteadyTime last_reload{};                                        // with other settings; 0: none
  SteadyTime last_return{};  // when a job last resumed from an older step; 0: never

  void complete_now(std::size_t host, const std::string& name, const Content& content, SteadyTime now);
  // Still the same checkpoint, with a file more or other times.
  void renew(std::size_t host, const std::string& name, const Content& content, SteadyTime now);

  // Complete on this host and, of a checkpoint of several, on all others too, from the same attempt.
  bool is_whole(std::size_t host, const std::string& name, bool has_shards) const;
  bool is_checkpoint(const std::string& name) const { return steps.contains(name); }
  std::uint64_t step_of(const std::string& name) const;
  // Whether the content is a complete state of that checkpoint.
  bool is_complete(const std::string& name, const Content& content) const;
  // The name with the highest step that is complete in the listing; none if there is none. `form`: among
  // names of that form alone.
  std::optional<std::string> highest_in(const Listing& listing, const std::string& form = "") const;
  // Whether the job has saved it after that other one, which has a higher step: it went back meanwhile.
  bool is_after(const Save& save, const std::string& other) const;
  // The same, if that host can know it. `keep` may delete one that was sent as soon as another host sends a
  // higher one: which of the two is later only the clocks of two hosts could tell.
  bool is_known_to_be_after(std::size_t host, const std::string& name, const std::string& other) const;
};

std::string to_string(Save::State state);
// The name without its numbers: one save may have several files, as G_100.pth and D_100.pth.
std::string form_in_short(const std::string& name);

}  // namespace spark::histories
