// The screens: each prints one object of the contract (what --json prints) for a person.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "cli/view/terminal.hpp"

namespace spark::cli {

void print_status(std::ostream& out, const Terminal& terminal, const json::object& status, WallTime now);
void print_datasets(std::ostream& out, const Terminal& terminal, const json::object& datasets, WallTime now);
// `fleet` of the status; the object of `ls --fleet --json`.
void print_fleet(std::ostream& out, const Terminal& terminal, const json::object& fleet);
void print_fleet_datasets(std::ostream& out, const Terminal& terminal, const json::object& answer);
// The running jobs, then the last that ended, newest first.
void print_jobs(std::ostream& out, const Terminal& terminal, const json::object& jobs, WallTime now);
void print_discovery(std::ostream& out, const Terminal& terminal, const json::object& discovery);

// A commented configuration to start from, with the target's subsystems.
std::string discovery_as_config(const json::object& discovery, WallTime now);

// The table of `links` in a report of doctor; nothing if none was tested.
void print_links(std::ostream& out, const Terminal& terminal, const json::object& report);
// The findings of doctor, its to_json().
void print_findings(std::ostream& out, const Terminal& terminal, const json::object& report);

// "142 GB, 1,281,167 files, copied in 61 s (2.31 GB/s)", of one dataset in the result of `stage`.
std::string staged_in_words(const json::object& dataset);

// "skipped 2 that are neither file, folder nor symlink: a (FIFO), b (socket)"; the first ten are named.
std::string skipped_in_words(const std::vector<std::string>& skipped);

// "datasets: waiting - 192.168.0.100:4420 did not answer"
std::string volume_in_words(const json::object& volume);

}  // namespace spark::cli
