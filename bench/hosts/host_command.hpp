// How a program is started on another host.
#pragma once

#include <string>
#include <vector>

namespace spark::bench {

enum class Launcher {
  Ssh,   // asks no question: a host that needs a password is an error
  Srun,  // a step of the allocation that this process runs in
};

// Srun within an allocation of Slurm (`slurm_job` is its number), else Ssh.
Launcher launcher_for(const char* slurm_job);

// What runs `command` on `host`, with its stdin, stdout and stderr as ours.
std::vector<std::string> command_on(Launcher launcher, const std::string& host,
                                    const std::vector<std::string>& command);

// "ssh -o BatchMode=yes spark2 true": for the user to try.
std::string trial_of(Launcher launcher, const std::string& host);

}  // namespace spark::bench
