#pragma once
// The experiments, one source file each; list.cpp puts them in order.

#include "experiment.h"

namespace pallas::experiments {

Result<Outcome> run_figure1(const Settings& settings);
Result<Outcome> run_table1(const Settings& settings);
Result<Outcome> run_figure2(const Settings& settings);
Result<Outcome> run_figure5(const Settings& settings);
Result<Outcome> run_figure6(const Settings& settings);
Result<Outcome> run_table2(const Settings& settings);
Result<Outcome> run_table3(const Settings& settings);
Result<Outcome> run_figure7(const Settings& settings);
Result<Outcome> run_figure8(const Settings& settings);
Result<Outcome> run_figure9(const Settings& settings);
Result<Outcome> run_ctho(const Settings& settings);
Result<Outcome> run_impactho(const Settings& settings);
Result<Outcome> run_two_front(const Settings& settings);
Result<Outcome> run_uncertainty(const Settings& settings);
Result<Outcome> run_scale(const Settings& settings);

}  // namespace pallas::experiments
