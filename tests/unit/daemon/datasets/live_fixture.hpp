// Requests that take a dataset while it is staged, with scripts for the staging and for the view's process.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/text.hpp"
#include "tests/unit/daemon/datasets/fixture.hpp"

namespace spark::datasets {

// A service manager.
class KeepingManager final : public Notifier {
 public:
  void keep(const std::string& name, int /*descriptor*/) override { kept.push_back(name); }
  void forget(const std::string& name) override { forgotten.push_back(name); }
  std::vector<std::string> kept, forgotten;

 private:
  void tell(const std::string& /*state*/) override {}
};

class LiveTest : public DatasetsTest {
 protected:
  KeepingManager manager;
  live::KeptDescriptors kept;
  live::ViewTimings views;

  void adjust(Context& parts) override {
    parts.kept = kept;
    parts.views = views;
  }

  LiveTest() {
    worker.on("stage", note_request("stages.log") + "echo '{\"progress\": {\"readable\": true}}'; " +
                           std::string(kBegun) + "; while [ ! -e go ]; do sleep 0.02; done; " + staged());
    serve_view(true);
    worker.on("show-copy", note_request("show-copy.log") + "echo '{\"result\": {}}'");
    worker.on("drop-pages", note_request("drop-pages.log") + "echo '{\"result\": {}}'");
    end_view("");
    worker.on("find-views", R"(echo '{"result": {"views": []}}')");
  }

  // A staging that finds no room once a worker, or the test, has made this file.
  void stage_until_full(const std::string& file) {
    worker.on("stage",
              "cat > /dev/null; echo '{\"progress\": {\"readable\": true}}'; " + std::string(kBegun) +
                  "; while [ ! -e " + file +
                  " ]; do sleep 0.02; done; "
                  "echo '{\"error\": {\"kind\": \"no_space\", \"what\": \"it is full\", \"hint\": \"\"}}'");
  }

  // `before`: of the script. Files with the lines `x`: failed, ended, removed; and ended-NUMBER.
  void end_view(const std::string& before) {
    worker.on("end-view",
              note_request("end-view.log") + before +
                  "view=${request##*\\\"view\\\":}; view=${view%%[,\\}]*}; "
                  "case $request in *'\"remove\":true'*) echo x >> removed;; "
                  "*'\"detach\":true'*) echo x >> ended; touch ended-$view;; *) echo x >> failed;; esac; "
                  "echo '{\"result\": {}}'");
  }
  int times(const char* what) const {
    std::ifstream file(worker.folder() / what);
    return static_cast<int>(std::count(std::istreambuf_iterator<char>(file), {}, 'x'));
  }
  // Of a view: it has `failed`, `ended`, been `removed`.
  bool has(const char* what, int often = 1) {
    return run_until(context, [&] { return times(what) >= often; });
  }

  // Its process answers until the view ends, or the file `killed` is there.
  void serve_view(bool can_resend) {
    worker.on("serve-view",
              note_request("serve-view.log") +
                  "view=${request##*\\\"view\\\":}; view=${view%%[,\\}]*}; "
                  "echo '{\"progress\": {\"folder\": \"/live/imagenet\", \"can_resend\": " +
                  (can_resend ? "true" : "false") +
                  "}}'; while [ ! -e ended-$view ]; do if [ -e killed ]; then rm killed; kill -9 "
                  "$$; fi; sleep 0.02; done; "
                  "echo '{\"result\": {}}'");
  }

  std::shared_ptr<Job> stage_now(Bytes max_rate = 0, uid_t user = 0,
                                 const std::string& dataset = "imagenet") {
    StageRequest request;
    request.datasets = {dataset};
    request.demand.max_rate = max_rate;
    request.asker.uid = user;
    request.now = true;
    request.lease = std::chrono::hours(1);
    request.asker.holder = "a test";
    auto job = datasets->requests().stage(std::move(request));
    EXPECT_TRUE(job) << job.error().message();
    return *job;
  }
  static json::object dataset_of(const std::shared_ptr<Job>& job) {
    const auto event = job->final_event();
    const json::object* result = get_object(event, "result");
    return result == nullptr ? json::object{} : get_array(*result, "datasets")->front().as_object();
  }
  void touch(const char* name) const { std::ofstream(worker.folder() / name) << "x"; }
  bool happens(const char* verb, int calls = 1) {
    return run_until(context, [&] { return worker.calls(verb) >= calls; });
  }
  // A call is counted before its script notes the request.
  bool is_noted(const char* verb, const std::string& text) {
    return run_until(context,
                     [&] { return text_of(std::string(verb) + ".log").find(text) != std::string::npos; });
  }
  std::string without_copy() const {
    return R"({"datasets": [], "usage": {"path": "/c", "capacity_bytes": 10, "used_bytes": 5, "free_bytes": 5}})";
  }
  void start_empty() {
    worker.on("catalog", "printf '%s\\n' '{\"result\": " + without_copy() + "}'");
    start();
  }
  std::uint64_t leased_generation() const {
    const auto leases = datasets->leases().of("imagenet");
    return leases.empty() ? 99 : leases.front()->generation;
  }
  // A lease follows once the copy is shown.
  bool is_leased(std::uint64_t generation) {
    return run_until(context, [&] { return leased_generation() == generation; });
  }
};

}  // namespace spark::datasets
