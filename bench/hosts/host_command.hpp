// Starts a program on another host.
#pragma once

#include <string>
#include <vector>

namespace spark::bench {

enum class Launcher {
  Ssh,   // never prompts: a host that needs a password is an error
  Srun,  // a step in the allocation of this process
};

// Srun within a Slurm allocation (`slurm_job` is its number), otherwise Ssh.
Launcher launcher_for(const char* slurm_job);

// The local command line that runs `command` on `host` and passes our stdin, stdout and stderr through.
std::vector<std::string> command_on(Launcher launcher, const std::string& host,
                                    const std::vector<std::string>& command);

// "ssh -o BatchMode=yes spark2 true": a command for the user to try.
std::string trial_of(Launcher launcher, const std::string& host);

}  // namespace spark::bench
