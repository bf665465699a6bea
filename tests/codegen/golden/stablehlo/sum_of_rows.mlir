// sum(x, axis=1)
module @tenon {
  func.func public @main(%arg0: tensor<4x8xf32>) -> (tensor<4xf32>) {
    %1 = stablehlo.convert %arg0 : (tensor<4x8xf32>) -> tensor<4x8xf64>
    %2 = stablehlo.constant dense<0x0000000000000000> : tensor<f64>
    %3 = "stablehlo.reduce"(%1, %2) ({
    ^bb0(%a: tensor<f64>, %b: tensor<f64>):
      %c = stablehlo.add %a, %b : tensor<f64>
      "stablehlo.return"(%c) : (tensor<f64>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<4x8xf64>, tensor<f64>) -> tensor<4xf64>
    %4 = stablehlo.convert %3 : (tensor<4xf64>) -> tensor<4xf32>
    %5 = stablehlo.reshape %4 : (tensor<4xf32>) -> tensor<4x1xf32>
    %6 = stablehlo.reshape %5 : (tensor<4x1xf32>) -> tensor<4xf32>
    "func.return"(%6) : (tensor<4xf32>) -> ()
  }
}
