// A worker program with verbs written in shell, so that no real kernel operation is needed.
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

// Beginning of a script: appends the request to the file in one write, since other workers may append too.
inline std::string note_request(const std::string& file) {
  return "read -r request; printf '%s\\n' \"$request\" >> " + file + "; ";
}

class ScriptedWorker {
 public:
  ScriptedWorker() {
    ::signal(SIGPIPE, SIG_IGN);  // as in the daemon: a worker may end without reading its request
    char name[] = "/tmp/spark-worker-XXXXXX";
    folder_ = ::mkdtemp(name);
    write();
  }
  // An abandoned worker may still write here, so removal is retried for 2 s.
  ~ScriptedWorker() {
    std::error_code error;
    for (int attempt = 0; attempt < 100; ++attempt) {
      std::filesystem::remove_all(folder_, error);
      if (!error) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  // `script` runs in the folder with the request on stdin; $n is the number of calls of this verb, from 1.
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
    // In "serve" mode the lines are {"verb":"VERB","request":{…}}.
    file << "#!/bin/sh\ncd " << folder_
         << " || exit 1\n"
         // One that waits for its test ends after it: dozens of them took a core.
         << "sleep() { [ -e \"$0\" ] || exit 1; command sleep \"$1\"; }\n"
         << "if [ $2 = serve ]; then\n  echo $$ >> serve.pids\n  while read -r line; do\n"
         << "    verb=${line#*'\"verb\":\"'}\n    verb=${verb%%'\"'*}\n"
         << "    request=${line#*',\"request\":'}\n"
         << "    printf '%s\\n' \"${request%'}'}\" | $0 worker $verb\n"
         // What kills the program of a verb kills the worker that serves it: there is only one process.
         << "    [ $? -lt 128 ] || kill -9 $$\n  done\n  exit\nfi\n"
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
