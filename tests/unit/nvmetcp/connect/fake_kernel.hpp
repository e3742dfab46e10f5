// The kernel's part of a removal.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "tests/support/fake_sysfs.hpp"

namespace spark::nvmetcp {

inline constexpr std::chrono::milliseconds kSoon{60'000};  // never reached: the fake kernel acts at once

// Plays the kernel: removes the controller after "1" was written to delete_controller.
class FakeKernel {
 public:
  FakeKernel(test::FakeSysfs& sysfs, const std::string& controller)
      : thread_([this, &sysfs, folder = test::FakeSysfs::controller_folder(controller)] {
          const auto end = std::chrono::steady_clock::now() + kSoon;
          while (!stop_ && std::chrono::steady_clock::now() < end) {
            if (sysfs.read(folder + "/delete_controller") == "1") return sysfs.remove(folder);
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
          }
        }) {}
  ~FakeKernel() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace spark::nvmetcp
