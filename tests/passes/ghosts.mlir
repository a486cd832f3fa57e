// RUN: sheaf-opt --ghosts=remarks=1 %s 2>&1 | FileCheck %s
// RUN: sheaf-opt --ghosts=without=ghosts %s | FileCheck %s --check-prefix=OFF
// OFF-NOT: sheaf.ghost

// CHECK-DAG: remark: what leaves the shorter branch counts as ready 2 depths later, so that step keeps in step
// CHECK-DAG: remark: branches of 0 and 1 records are not brought into step: what follows them in the recursion gains less than it costs

sheaf.param @w : tensor<16x16xf32> init("glorot", [])
sheaf.block @part args(1) {
^bb0(%x: tensor<16xf32>):
  %y = sheaf.apply "tanh"(%x) {} : (tensor<16xf32>) -> tensor<16xf32>
  sheaf.yield %y : tensor<16xf32>
}
sheaf.block @both args(2) {
^bb0(%x: tensor<16xf32>, %z: tensor<16xf32>):
  %y = sheaf.apply "add"(%x, %z) {} : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  sheaf.yield %y : tensor<16xf32>
}
sheaf.block @step args(1) {
^bb0(%x: tensor<16xf32>, %w: tensor<16x16xf32>):
  %y = sheaf.apply "matmul"(%x, %w) {} : (tensor<16xf32>, tensor<16x16xf32>) -> tensor<16xf32>
  sheaf.yield %y : tensor<16xf32>
}

// A step follows the branches: it keeps in step. Of the inner branches one has a record less, too.
// CHECK-LABEL: func.func @loop
func.func @loop(%a: tensor<16xf32>, %cs: !sheaf.list<i1>) -> tensor<16xf32> {
  %f = sheaf.fold %a, %cs : (tensor<16xf32>, !sheaf.list<i1>) -> tensor<16xf32> {
  ^bb0(%h: tensor<16xf32>, %c: i1):
    // CHECK: scf.if
    %b = scf.if %c -> tensor<16xf32> {
      %p = sheaf.record @part(%h) weights [] : (tensor<16xf32>) -> tensor<16xf32>
      // CHECK: scf.if
      %i = scf.if %c -> tensor<16xf32> {
        %q = sheaf.record @part(%p) weights [] : (tensor<16xf32>) -> tensor<16xf32>
        scf.yield %q : tensor<16xf32>
      } else {
        // CHECK: else
        // CHECK-NEXT: %[[I:.*]] = sheaf.ghost %{{.*}}, 1 : tensor<16xf32>
        // CHECK-NEXT: scf.yield %[[I]]
        scf.yield %p : tensor<16xf32>
      }
      scf.yield %i : tensor<16xf32>
    } else {
      // CHECK: else
      // CHECK-NEXT: %[[O:.*]] = sheaf.ghost %{{.*}}, 2 : tensor<16xf32>
      // CHECK-NEXT: scf.yield %[[O]]
      scf.yield %h : tensor<16xf32>
    }
    // CHECK: sheaf.record @step
    %n = sheaf.record @step(%b) weights [@w] : (tensor<16xf32>) -> tensor<16xf32>
    sheaf.yield %n : tensor<16xf32>
  }
  return %f : tensor<16xf32>
}

// Nothing follows the branches: those who take the short one may pass the others.
// CHECK-LABEL: func.func @skips
// CHECK-NOT: sheaf.ghost
func.func @skips(%a: tensor<16xf32>, %cs: !sheaf.list<i1>) -> tensor<16xf32> {
  %f = sheaf.fold %a, %cs : (tensor<16xf32>, !sheaf.list<i1>) -> tensor<16xf32> {
  ^bb0(%h: tensor<16xf32>, %c: i1):
    %b = scf.if %c -> tensor<16xf32> {
      %p = sheaf.record @part(%h) weights [] : (tensor<16xf32>) -> tensor<16xf32>
      scf.yield %p : tensor<16xf32>
    } else {
      scf.yield %h : tensor<16xf32>
    }
    sheaf.yield %b : tensor<16xf32>
  }
  return %f : tensor<16xf32>
}

// Nor where it is no loop, nor where a branch has no bound.
// CHECK-LABEL: func.func @once
// CHECK-NOT: sheaf.ghost
func.func @once(%h: tensor<16xf32>, %c: i1) -> tensor<16xf32> {
  %b = scf.if %c -> tensor<16xf32> {
    %p = sheaf.record @part(%h) weights [] : (tensor<16xf32>) -> tensor<16xf32>
    scf.yield %p : tensor<16xf32>
  } else {
    scf.yield %h : tensor<16xf32>
  }
  %n = sheaf.record @step(%b) weights [@w] : (tensor<16xf32>) -> tensor<16xf32>
  return %n : tensor<16xf32>
}
func.func @endless(%h: tensor<16xf32>, %c: i1) -> tensor<16xf32> {
  %b = scf.if %c -> tensor<16xf32> {
    %p = func.call @endless(%h, %c) : (tensor<16xf32>, i1) -> tensor<16xf32>
    scf.yield %p : tensor<16xf32>
  } else {
    scf.yield %h : tensor<16xf32>
  }
  %n = sheaf.record @step(%b) weights [@w] : (tensor<16xf32>) -> tensor<16xf32>
  return %n : tensor<16xf32>
}

// Branches that end in calls of one function meet at its begin.
// CHECK-LABEL: func.func @turns
func.func @turns(%h: tensor<16xf32>, %c: i1) -> tensor<16xf32> {
  %n = sheaf.record @step(%h) weights [@w] : (tensor<16xf32>) -> tensor<16xf32>
  %b = scf.if %c -> tensor<16xf32> {
    %p = sheaf.record @part(%n) weights [] : (tensor<16xf32>) -> tensor<16xf32>
    %l = func.call @turns(%p, %c) : (tensor<16xf32>, i1) -> tensor<16xf32>
    scf.yield %l : tensor<16xf32>
  } else {
    // CHECK: else
    // CHECK: %[[G:.*]] = sheaf.ghost %{{.*}}, 1 : tensor<16xf32>
    // CHECK: call @turns(%[[G]]
    %r = func.call @turns(%n, %c) : (tensor<16xf32>, i1) -> tensor<16xf32>
    scf.yield %r : tensor<16xf32>
  }
  return %b : tensor<16xf32>
}

// What a branch records without what the loop carries has run before: one record more, not two.
// CHECK-LABEL: func.func @before
func.func @before(%a: tensor<16xf32>, %cs: !sheaf.list<i1>, %x: tensor<16xf32>) -> tensor<16xf32> {
  %f = sheaf.fold %a, %cs : (tensor<16xf32>, !sheaf.list<i1>) -> tensor<16xf32> {
  ^bb0(%h: tensor<16xf32>, %c: i1):
    %b = scf.if %c -> tensor<16xf32> {
      %p = sheaf.record @part(%x) weights [] : (tensor<16xf32>) -> tensor<16xf32>
      %q = sheaf.record @both(%h, %p) weights [] : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
      scf.yield %q : tensor<16xf32>
    } else {
      // CHECK: else
      // CHECK-NEXT: %[[G:.*]] = sheaf.ghost %{{.*}}, 1 : tensor<16xf32>
      // CHECK-NEXT: scf.yield %[[G]]
      scf.yield %h : tensor<16xf32>
    }
    %n = sheaf.record @step(%b) weights [@w] : (tensor<16xf32>) -> tensor<16xf32>
    sheaf.yield %n : tensor<16xf32>
  }
  return %f : tensor<16xf32>
}
