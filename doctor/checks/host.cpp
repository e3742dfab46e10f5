#include "doctor/checks/host.hpp"

namespace spark::doctor {

const config::Config& Host::settings() const {
  static const config::Config none;
  return config ? *config : none;
}

}  // namespace spark::doctor
