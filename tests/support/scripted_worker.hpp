// A worker program whose verbs are lines of shell: what the real one would do to the kernel, without one.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>

namespace spark {

// The beginning of a script: appends the request to the file, all at once, as others may do the same.
inline std::string note_request(const std::string& file) {
  return "read -r request; printf '%s\\n' \"$request\" >> " + file + "; ";
}

class ScriptedWorker {
 public:
  ScriptedWorker() {
    ::signal(SIGPIPE, SIG_IGN);  // as the daemon does: a worker may end without reading its request
    char name[] = "/tmp/spark-worker-XXXXXX";
    folder_ = ::mkdtemp(name);
    write();
  }
  // A worker that nobody waits for may still write here: it is given the time to end.
  ~ScriptedWorker() {
    std::error_code error;
    for (int attempt = 0; attempt < 100; ++attempt) {
      std::filesystem::remove_all(folder_, error);
      if (!error) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  // `script` runs with the request on stdin, in the folder; $n is how often this verb was called, from 1.
  void on(const std::string& verb, const std::string& script) {
    verbs_[verb] = script;
    write();
  }
  int calls(const std::string& verb) const {
    std::ifstream file(folder_ / (verb + ".calls"));
    int count = 0;
    for (std::string line; std::getline(file, line);) ++count;
    return count;
  }
  std::string program() const { return (folder_ / "worker").native(); }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  void write() const {
    const auto path = folder_ / "worker";
    std::ofstream file(path.native() + ".new");
    // "serve": its lines are {"verb":"VERB","request":{…}}.
    file << "#!/bin/sh\ncd " << folder_ << " || exit 1\n"
         << "if [ $2 = serve ]; then\n  echo $$ >> serve.pids\n  while read -r line; do\n"
         << "    verb=$(echo \"$line\" | cut -d'\"' -f4)\n"
         << "    echo \"$line\" | sed 's/.*,\"request\"://; s/}$//' | $0 worker $verb\n  done\n  exit\nfi\n"
         << "echo x >> $2.calls\nn=$(wc -l < $2.calls)\ncase $2 in\n";
    for (const auto& [verb, script] : verbs_) file << verb << ") " << script << " ;;\n";
    file << "*) echo '{\"error\": {\"kind\": \"failed\", \"what\": \"no script\", \"hint\": \"\"}}' "
            ";;\nesac\n";
    file.close();
    ::chmod((path.native() + ".new").c_str(), 0755);
    std::filesystem::rename(path.native() + ".new", path);
  }

  std::filesystem::path folder_;
  std::map<std::string, std::string> verbs_;
};

}  // namespace spark
