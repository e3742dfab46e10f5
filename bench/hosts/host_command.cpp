#include "bench/hosts/host_command.hpp"

#include "bench/fio/fio_job.hpp"

namespace spark::bench {

Launcher launcher_for(const char* slurm_job) {
  return slurm_job != nullptr && *slurm_job != '\0' ? Launcher::Srun : Launcher::Ssh;
}

std::vector<std::string> command_on(Launcher launcher, const std::string& host,
                                    const std::vector<std::string>& command) {
  if (launcher == Launcher::Ssh) {
    // ssh passes a single line to the shell of the remote host.
    return {"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-T", "--", host, shell_line(command)};
  }
  std::vector<std::string> words = {"srun",      "--overlap",  "--quiet",           "--unbuffered",
                                    "--nodes=1", "--ntasks=1", "--nodelist=" + host};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

std::string trial_of(Launcher launcher, const std::string& host) {
  return launcher == Launcher::Ssh ? "ssh -o BatchMode=yes " + host + " true"
                                   : "srun --overlap --nodelist=" + host + " true";
}

}  // namespace spark::bench
