// A spark-staged with answers set by the test, and mounts in memory.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "csi/daemon.hpp"
#include "csi/mounts.hpp"
#include "csi/publication.hpp"

namespace spark::csi {

// Answers by "METHOD target" in order; the last one is repeated. Other requests get a 404.
class FakeClient final : public cli::Client {
 public:
  void on(const std::string& request, std::vector<cli::Answer> answers) {
    answers_[request] = std::move(answers);
  }
  void on(const std::string& request, unsigned status, const std::string& body) {
    on(request, {{status, body}});
  }

  Result<cli::Answer> send(const cli::Request& request) override {
    const std::string line = request.method + " " + request.target;
    sent.push_back(line);
    bodies.push_back(request.body);
    if (is_away) return fail(Errc::Unavailable, "the daemon is not running");
    const auto found = answers_.find(line);
    if (found == answers_.end())
      return cli::Answer{404, R"({"error": {"kind": "not_found", "what": "nothing there", "hint": ""}})"};
    cli::Answer answer = found->second.front();
    if (found->second.size() > 1) found->second.erase(found->second.begin());
    return answer;
  }
  // Gives the lines of the next list of the target, then breaks; the last list is repeated. `on_line` is
  // called before each line.
  void on_stream(const std::string& target, std::vector<std::vector<std::string>> lists) {
    streams_[target] = std::move(lists);
  }
  Result<cli::Answer> stream(const cli::Request& request, const cli::LineSink& sink, Duration) override {
    sent.push_back(request.method + " " + request.target);
    if (is_away) return fail(Errc::Unavailable, "the daemon is not running");
    const auto found = streams_.find(request.target);
    if (found == streams_.end() || found->second.front().empty()) {
      if (found != streams_.end()) found->second.erase(found->second.begin());
      return cli::Answer{404, "{}"};
    }
    const std::vector<std::string> lines = found->second.front();
    if (found->second.size() > 1) found->second.erase(found->second.begin());
    for (const std::string& line : lines) {
      on_line();
      if (!sink(line)) return cli::Answer{200, ""};
    }
    return fail(Errc::Unavailable, "the connection broke");
  }
  std::function<void()> on_line = [] {};
  long count(const std::string& line) const { return std::ranges::count(sent, line); }

  bool is_away = false;
  std::vector<std::string> sent, bodies;

 private:
  std::map<std::string, std::vector<cli::Answer>> answers_;
  std::map<std::string, std::vector<std::vector<std::string>>> streams_;
};

class FakeMounter final : public Mounter {
 public:
  Result<Place> look_at(const std::filesystem::path& target) override {
    const auto found = places.find(target);
    return found == places.end() ? Place::Empty : found->second;
  }
  Result<> mount(const std::filesystem::path& folder, const std::filesystem::path& target,
                 Access access) override {
    if (fails) return fail(Errc::Failed, "the mount failed");
    mounted[target] = folder;
    places[target] = access == Access::ReadOnly ? Place::Copy : Place::Output;
    return {};
  }
  bool is_same(const std::filesystem::path& folder, const std::filesystem::path& target) override {
    const auto found = mounted.find(target);
    return found != mounted.end() && found->second == folder;
  }
  Result<> unmount(const std::filesystem::path& target) override {
    if (fails) return fail(Errc::Failed, "the unmount failed");
    places.erase(target);
    return {};
  }
  Result<Usage> usage(const std::filesystem::path&) override { return Usage{.bytes = 100}; }

  bool fails = false;
  std::map<std::filesystem::path, Place> places;
  std::map<std::filesystem::path, std::filesystem::path> mounted;
};

constexpr char kConfig[] =
    R"({"datasets": {"imagenet": {"path": "x"}, "secret": {"path": "y", "namespaces": ["team-a"]}},
        "outputs": {"run7": {"path": "/out/run7", "namespaces": ["team-b"]}, "private": {"path": "/out/private"}}})";

inline PublishRequest request_for(const std::string& dataset, const std::string& pod_namespace = "team-b") {
  PublishRequest request;
  request.volume_id = "csi-1f";
  request.target_path = "/pods/1/mount";
  request.is_mount = true;
  request.context = {{"dataset", dataset},
                     {"csi.storage.k8s.io/ephemeral", "true"},
                     {"csi.storage.k8s.io/pod.name", "train-0"},
                     {"csi.storage.k8s.io/pod.namespace", pod_namespace}};
  return request;
}

inline PublishRequest request_for_output(const std::string& output) {
  PublishRequest request = request_for("");
  request.context.erase("dataset");
  request.context["output"] = output;
  return request;
}

inline std::string listing(const std::string& volume, const std::string& dataset) {
  return R"({"datasets": [{"name": ")" + dataset + R"(", "leases": [{"id": "job:csi:)" + volume + ":" +
         dataset + R"(", "job": {"system": "csi", "id": ")" + volume +
         R"(", "user": "team-b/train-0"}}, {"id": "1f", "holder": "pid 7"}, {"id": "x", "job": {"system": "slurm", "id": "7"}}],
         "copies": [{"generation": 2, "path": "/cache/2"}, {"generation": 1, "path": "/cache/1"}]}]})";
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "spark-csi-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  void write(const std::string& file, const std::string& content) const {
    std::filesystem::create_directories((path / file).parent_path());
    std::ofstream(path / file) << content;
  }
  std::filesystem::path path;
};

}  // namespace spark::csi
