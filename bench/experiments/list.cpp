#include "list.h"

namespace pallas::experiments {

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> kAll{
      {"figure1", "Tokens that are forwarded over a chain of gNBs.", run_figure1},
      {"table1", "Recovery at the target after an unprepared handover.", run_table1},
      {"figure2", "SIT and early exposure by window.", run_figure2},
      {"figure5", "Single handovers: every scheme, three models, three goodputs.", run_figure5,
       true},
      {"table2", "Sessions of up to eight handovers, every scheme, three models.", run_table2},
      {"figure6", "The window that Algorithm 1 chooses.", run_figure6},
      {"table3", "How well CVH predicts handovers, and what wrong predictions waste.", run_table3,
       true},
      {"figure7", "How long the target must be known beforehand.", run_figure7},
      {"figure8", "Handovers at once to one target, and sessions that live there.", run_figure8},
      {"figure9", "What each half of Pallas is worth.", run_figure9},
      {"ctho", "Multi-user ctHO: the exact optimum and the printed one.", run_ctho},
      {"impactho", "Handovers that share a link and resume on a part of their KV.", run_impactho},
      {"two-front", "Two-front beside Pallas on slow and fast links.", run_two_front},
      {"uncertainty", "Windows that know how good the prediction is.", run_uncertainty, true},
      {"scale", "Time and memory of a simulated city.", run_scale},
  };
  return kAll;
}

const Experiment* find_experiment(std::string_view name) {
  for (const auto& experiment : experiments()) {
    if (experiment.name == name) return &experiment;
  }
  return nullptr;
}

}  // namespace pallas::experiments
