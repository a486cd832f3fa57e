//===- train.h - Trainings in C++ -------------------------------*- C++ -*-===//
//
// All that a training loop of one's own is made of (examples/train/custom_loop.cpp is one):
//
//   // Compiled with CompileOptions::training; its entry is a loss.
//   Model model = ...
//   // Every result must have a record to go back through.
//   SessionOptions options;
//   options.keepBytes = 0;
//   Session session(model, options);
//   session.initParams(seed);
//   Optimizer optimizer(session, {.kind = OptimizerOptions::Adam});
//
//   session.setStep(step);                                     // what draws follow from
//   std::span<const Outcome> outcomes = session.run(batch);    // forward: one loss an instance
//   session.tensor(model.entry.resultType, outcome.slots)      // its value
//   std::span<const ParamGradient> gradients = session.backward(weights);
//   optimizer.step(gradients, learningRate, scale);            // or any other change:
//   session.paramRow(i)                                        // a parameter, to write to
//
// `weights[i]` is what the loss of instance i counts: gradients are those of their weighted sum.
// They are valid until the next run, and have the same bits on any number of threads. Gradients and
// parameters are in row layout (layout.h); forEachRow (gradient_rows.h) visits the elements that a
// gradient has. Results that are no losses have cotangents instead of weights, and inputs have
// gradients where the model is compiled for it (session.h). GradientSum adds up gradients of
// several runs, WeightAverage averages parameters over steps, LossScale keeps f16 gradients from
// vanishing, Course keeps count of a training, findAnomaly says where NaN comes from, and Trainer
// is a whole loop over shuffled mini-batches with all of these. Errors: UserError when memory is
// short, InternalError for a session that cannot go back; an instance that fails has its error in
// its outcome and no part in the gradients.
//
//===----------------------------------------------------------------------===//
#ifndef SHEAF_RUNTIME_TRAIN_TRAIN_H
#define SHEAF_RUNTIME_TRAIN_TRAIN_H

#include "runtime/train/anomaly.h"
#include "runtime/train/average.h"
#include "runtime/train/course.h"
#include "runtime/train/gradient_rows.h"
#include "runtime/train/gradient_sum.h"
#include "runtime/train/loss_scale.h"
#include "runtime/train/optimizer.h"
#include "runtime/train/trainer.h"

#endif // SHEAF_RUNTIME_TRAIN_TRAIN_H
