// sqrt(d) / d
module @tenon {
  func.func public @main(%arg0: tensor<4xf64>) -> (tensor<4xf64>) {
    %1 = stablehlo.sqrt %arg0 : tensor<4xf64>
    %2 = stablehlo.divide %1, %arg0 : tensor<4xf64>
    "func.return"(%2) : (tensor<4xf64>) -> ()
  }
}
