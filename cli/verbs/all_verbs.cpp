#include "cli/verbs/verbs.hpp"

#include "cli/verbs/bench/bench.hpp"
#include "cli/verbs/datasets/verbs.hpp"
#include "cli/verbs/volumes/verbs.hpp"

namespace spark::cli {

void add_all_verbs(App& app) {
  add_status(app);
  add_discover(app);
  add_volumes(app);
  add_wait(app);
  add_stage(app);
  add_prefetch(app);
  add_run(app);
  add_stage_out(app);
  add_ls(app);
  add_verify(app);
  add_scrub(app);
  add_evict(app);
  add_release(app);
  add_jobs(app);
  add_cancel(app);
  add_copy(app);
  add_bench(app);
  add_doctor(app);
  add_fleet(app);
  add_host(app);
  add_config(app);
  add_import(app);
  add_complete(app);
}

}  // namespace spark::cli
